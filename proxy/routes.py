"""The routes of the HTTP server, and the shape that all its errors have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from proxy.admission import Admission
from proxy.app import Agents
from proxy.connections import Connections
from proxy.control import Control
from proxy.journal import LOG_FAILED, Journal
from proxy.log.errors import LogError
from proxy.requests import LIMITS_KEY
from proxy.respond import error_response
from proxy.ui.access import secure
from proxy.ui.routes import LivePage
from proxy.wire.errors import INVALID_REQUEST, SERVER_ERROR, ApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

JOURNAL = web.AppKey("journal", Journal)


def build_app(
    agents: Agents,
    control: Control | None,
    journal: Journal,
    page: LivePage,
    admission: Admission,
    connections: Connections,
) -> web.Application:
    """`admission` says which requests are served at all."""

    @web.middleware
    async def watched(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await connections.serve(request, handler)

    @web.middleware
    async def admitted(request: web.Request, handler: Handler) -> web.StreamResponse:
        # By the route, not by the path: whatever leads to an agent's handler needs what agents need.
        if request.match_info.handler == agents.handle:
            return await handler(admission.admit_agent(request))
        admission.check_owner(request)
        return await handler(request)

    app = web.Application(
        client_max_size=connections.limits.request, middlewares=[watched, _errors, admitted]
    )
    app[LIMITS_KEY] = connections.limits
    app[JOURNAL] = journal
    app.on_response_prepare.append(secure)
    app.router.add_get("/healthz", _healthz)
    if control is not None:
        app.router.add_routes(control.routes())
        app.on_shutdown.append(control.stop)
    app.router.add_routes(page.routes())
    app.on_shutdown.append(page.stop)
    app.router.add_route("*", "/{path:(?s:.*)}", agents.handle)
    return app


async def _healthz(request: web.Request) -> web.Response:
    log = request.app[JOURNAL].log
    if log.failed is not None:
        await log.commit()
    return web.json_response({"status": "ok"})


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error of our own is JSON in OpenAI's shape."""
    try:
        return await handler(request)
    except ApiError as exc:
        return error_response(exc)
    except LogError as exc:
        fault = ApiError(503, f"nothing can be recorded: {exc}", SERVER_ERROR, LOG_FAILED)
        return error_response(fault, again=True)
    except web.HTTPException as exc:
        if exc.status < 400:
            raise
        return error_response(ApiError(exc.status, exc.reason, INVALID_REQUEST))
