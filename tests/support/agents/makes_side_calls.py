"""Asks for a title and for a route before each turn, and for a summary after it."""

import plain


def on_the_side(system: str, text: str) -> None:
    """A call whose answer, or failure, changes nothing."""
    messages = [{"role": "system", "content": system}, plain.user(text)]
    connection = plain.sent(messages, temperature=0)
    connection.getresponse().read()
    connection.close()


messages = [plain.SYSTEM]
for prompt in plain.prompts():
    on_the_side("Make a title of five words.", prompt)
    on_the_side("Which agent shall answer? Say its name.", f"Route this: {prompt}")
    messages.append(plain.user(prompt))
    text = plain.ask(messages, tools=[plain.TOOL])
    messages.append({"role": "assistant", "content": text})
    on_the_side("Sum up the conversation.", str(messages))
