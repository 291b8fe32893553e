/* An LLM provider that is never the bottleneck: one thread, epoll, fixed answers.
 *
 *     provider PORT GAP_US
 *
 * POST answers a chat completion of two tool calls; a text if the last message is a tool's result; or, for a
 * body with "stream": true, CHUNKS chunks of server-sent events, GAP_US microseconds apart, the usage and
 * [DONE]. The content of each chunk is "t=" and 20 digits: CLOCK_MONOTONIC in nanoseconds as it is written.
 * Everything else is answered with an empty list of models. Requests need a Content-Length.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, EVENTS = 256, CHUNKS = 50 };

/* A connection. `timer` ticks while a stream is written; `sent` counts its chunks. */
struct peer {
    int fd, timer, sent;
    size_t have;
    char *in;
};

/* What epoll gives back: the connection, and whether its timer fired. */
struct source {
    struct peer *peer;
    int is_timer;
};

static int epoll_fd;
static long gap_us;

static const char *CALLS =
    "{\"id\":\"chatcmpl-9f2c41d0b7e84c5fa6\",\"object\":\"chat.completion\",\"created\":1735776000,"
    "\"model\":\"bench-model\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":null,"
    "\"tool_calls\":[{\"id\":\"call_4mZ0qkTz1xWcVn8a\",\"type\":\"function\",\"function\":{\"name\":"
    "\"get_item\",\"arguments\":\"{\\\"item\\\": \\\"lamp\\\", \\\"count\\\": 2}\"}}]},\"logprobs\":null,"
    "\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":2840,\"completion_tokens\":36,"
    "\"total_tokens\":2876},\"system_fingerprint\":\"fp_bench\"}";
static const char *TEXT =
    "{\"id\":\"chatcmpl-9f2c41d0b7e84c5fa7\",\"object\":\"chat.completion\",\"created\":1735776000,"
    "\"model\":\"bench-model\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
    "\"There are two of them, and both can be had today. The shop in the high street keeps them until six; "
    "the other one wants to know by noon whether somebody comes for them, and closes on Sundays.\"},"
    "\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":2840,"
    "\"completion_tokens\":48,\"total_tokens\":2888},\"system_fingerprint\":\"fp_bench\"}";
static const char *CHUNK =
    "data: {\"id\":\"chatcmpl-9f2c41d0b7e84c5fa8\",\"object\":\"chat.completion.chunk\",\"created\":1735776000,"
    "\"model\":\"bench-model\",\"choices\":[{\"index\":0,\"delta\":{%s\"content\":\"t=%020llu \"},"
    "\"finish_reason\":null}]}\n\n";
static const char *LAST =
    "data: {\"id\":\"chatcmpl-9f2c41d0b7e84c5fa8\",\"object\":\"chat.completion.chunk\",\"created\":1735776000,"
    "\"model\":\"bench-model\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: {\"id\":\"chatcmpl-9f2c41d0b7e84c5fa8\",\"object\":\"chat.completion.chunk\",\"created\":1735776000,"
    "\"model\":\"bench-model\",\"choices\":[],\"usage\":{\"prompt_tokens\":2840,\"completion_tokens\":50,"
    "\"total_tokens\":2890}}\n\n"
    "data: [DONE]\n\n";
static const char *MODELS = "{\"object\":\"list\",\"data\":[]}";

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void watch(int fd, struct peer *peer, int is_timer) {
    struct source *source = malloc(sizeof *source);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    *source = (struct source){peer, is_timer};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
}

/* Answers are far smaller than a socket's buffer, so a short write means that the other side is gone. */
static int put(struct peer *peer, const char *data, size_t size) {
    return send(peer->fd, data, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

static int put_json(struct peer *peer, const char *body) {
    char out[2048];
    int size = snprintf(out, sizeof out,
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                        strlen(body), body);
    return put(peer, out, size);
}

static int put_chunk(struct peer *peer, const char *data, int last) {
    char out[2048];
    int size = snprintf(out, sizeof out, "%zx\r\n%s\r\n%s", strlen(data), data, last ? "0\r\n\r\n" : "");
    return put(peer, out, size);
}

static void tick_every(int timer, long microseconds) {
    struct timespec gap = {microseconds / 1000000, microseconds % 1000000 * 1000};
    struct itimerspec when = {gap, gap};
    timerfd_settime(timer, 0, &when, NULL);
}

/* The next chunk of a stream; after the last one its end, and the timer stands still. */
static int put_next(struct peer *peer) {
    char event[1024];
    struct timespec now;
    if (peer->sent == CHUNKS) {
        tick_every(peer->timer, 0);
        return put_chunk(peer, LAST, 1);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(event, sizeof event, CHUNK, peer->sent++ ? "" : "\"role\":\"assistant\",",
             now.tv_sec * 1000000000ULL + now.tv_nsec);
    return put_chunk(peer, event, 0);
}

static int begin_stream(struct peer *peer) {
    static const char *head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                              "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
    peer->sent = 0;
    if (put(peer, head, strlen(head)) || put_next(peer)) return -1;
    tick_every(peer->timer, gap_us);
    return 0;
}

/* What follows the last `key` and its colon in the body, blanks left out; "" where there is none. */
static const char *last_value(const char *body, const char *key) {
    const char *found = "", *at = body;
    while ((at = strstr(at, key))) {
        at += strlen(key);
        found = at + strspn(at, " :");
    }
    return found;
}

static int answer(struct peer *peer, const char *body) {
    if (strncmp(peer->in, "POST ", 5)) return put_json(peer, MODELS);
    if (!strncmp(last_value(body, "\"stream\""), "true", 4)) return begin_stream(peer);
    return put_json(peer, strncmp(last_value(body, "\"role\""), "\"tool\"", 6) ? CALLS : TEXT);
}

/* Answers the request that the buffer begins with, once all of it is there. -1 ends the connection. */
static int on_data(struct peer *peer) {
    ssize_t got = recv(peer->fd, peer->in + peer->have, BUFFER - 1 - peer->have, 0);
    if (got <= 0) return got < 0 && errno == EAGAIN ? 0 : -1;
    peer->have += got;
    peer->in[peer->have] = 0;
    char *end = strstr(peer->in, "\r\n\r\n");
    if (!end) return 0;
    char *length = strcasestr(peer->in, "\r\ncontent-length:");
    size_t body = end + 4 - peer->in;
    size_t whole = body + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
    if (peer->have < whole) return whole < BUFFER ? 0 : -1;
    peer->have = 0;
    return answer(peer, peer->in + body);
}

static int on_tick(struct peer *peer) {
    uint64_t ticks;
    return read(peer->timer, &ticks, sizeof ticks) < 0 ? 0 : put_next(peer);
}

/* The peer itself is kept: another of its events may be in the list that is worked through. */
static void drop(struct peer *peer) {
    close(peer->timer);
    close(peer->fd);
    free(peer->in);
    peer->fd = -1;
}

static void welcome(int listener) {
    int on = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct peer *peer = calloc(1, sizeof *peer);
    *peer = (struct peer){.fd = fd, .timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), .in = malloc(BUFFER)};
    watch(fd, peer, 0);
    watch(peer->timer, peer, 1);
}

static int listening(int port) {
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1024)) fail("listen");
    return fd;
}

int main(int argc, char **argv) {
    struct epoll_event events[EVENTS];
    if (argc != 3) return fprintf(stderr, "usage: provider PORT GAP_US\n"), 2;
    gap_us = atol(argv[2]);
    epoll_fd = epoll_create1(0);
    int listener = listening(atoi(argv[1]));
    watch(listener, NULL, 0);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct source *source = events[i].data.ptr;
            if (!source->peer)
                welcome(listener);
            else if (source->peer->fd >= 0 && (source->is_timer ? on_tick : on_data)(source->peer))
                drop(source->peer);
        }
    }
}
