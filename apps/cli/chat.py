"""`hybrid chat`: a conversation in the terminal, on the device, in the cloud, or on both."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...shared_protocol.errors import ClientClosed, HybridError
from .answer_options import answer_options, of_runtime
from .terminal import EndOfInput, Writer, leave_closed_pipe, line_editing, printable, read_message, say

if TYPE_CHECKING:
    from ...edge.client import HybridClient
    from ...shared_protocol.openai import HybridInfo

CONVERSATION = "chat"
HELP = """\
/reset        begin a new conversation
/save FILE    write this conversation as JSON
/exit         end (Ctrl-D does too)
A line that ends in \\ goes on in the next; three quotes begin and end several lines. Ctrl-C stops an answer.
A message that begins with / is sent when a space stands before it."""


@dataclass
class Conversation:
    """The turns so far, as they are sent; the system's word stays through /reset."""

    system: str | None
    turns: list[dict[str, str]] = field(default_factory=list)

    @property
    def messages(self) -> list[dict[str, str]]:
        return ([] if self.system is None else [{"role": "system", "content": self.system}]) + self.turns


@click.command()
@click.argument("model", default="smollm2-135m")
@click.option("--cloud", envvar="HYBRID_CLOUD", show_envvar=True, help="The address of a cloud that answers too.")
@click.option(
    "--policy", envvar="HYBRID_POLICY", show_envvar=True, type=click.Path(dir_okay=False), help="A policy file: which prompts go where."
)
@click.option("--api-key", envvar="HYBRID_API_KEY", show_envvar=True, help="The key for the cloud; better set by its variable.")
@answer_options
@click.option("--history/--no-history", default=True, show_default=True, help="Keep what was typed, for the arrow keys of next time.")
def chat(model: str, **options: Any) -> None:
    """Talk with MODEL on this machine and, with --cloud, with the cloud's: each turn says where it was computed, and why.

    MODEL is a name from `hybrid list` or a path. Messages may be piped in, one a line; then the first error ends it.
    """
    from ...edge.client import HybridClient
    from ...shared_protocol.store import Store
    from .load import load_or_pull

    loaded = load_or_pull(model)
    person = sys.stdin.isatty()
    client = HybridClient(loaded, options["cloud"], api_key=options["api_key"], policy=options["policy"], **of_runtime(options))
    with client:
        client.load()
        if person:
            also = f" and the cloud at {options['cloud']}" if options["cloud"] else ""
            say(f"{loaded.card.name} on this device ({options['runtime']}){also}. /help says what can be typed.")
        sampling = {name: options[name] for name in ("max_tokens", "temperature", "seed")}
        talk = _Talk(client, Conversation(options["system"]), sampling, person)
        try:
            with line_editing(Store().root / "chat_history" if options["history"] and person else None):
                talk.go_on()
        except BrokenPipeError:
            leave_closed_pipe()


@dataclass
class _Talk:
    client: HybridClient
    conversation: Conversation
    sampling: dict[str, Any]
    person: bool  # someone sits there: errors do not end it, and an interrupt ends an answer only

    def go_on(self) -> None:
        while True:
            try:
                message = read_message(self._line)
            except EndOfInput:
                return
            except KeyboardInterrupt:
                if not self.person:
                    raise
                click.echo("", err=True)
                say("/exit or Ctrl-D ends the conversation")
                continue
            if message.startswith("/"):
                if self._command(message):
                    return
            elif message.strip():
                self._turn(message.strip())

    def _line(self, more: bool) -> str:
        if self.person:
            try:
                return input("... " if more else ">>> ")
            except EOFError:
                click.echo("")
                raise EndOfInput from None
        try:
            line = sys.stdin.buffer.readline().decode("utf-8")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"a message is not UTF-8: {error.reason} at byte {error.start} of its line") from None
        if not line:
            raise EndOfInput
        return line.rstrip("\r\n")

    def _command(self, typed: str) -> bool:
        """Do what was typed; True to end."""
        name, _, rest = typed.partition(" ")
        if name in ("/exit", "/quit"):
            return True
        if name == "/help":
            say(HELP)
        elif name == "/reset":
            self.conversation.turns.clear()
            self.client.forget(CONVERSATION)
            say("a new conversation")
        elif name == "/save" and rest.strip():
            self._save(rest.strip())
        else:
            say("/save needs a file" if name == "/save" else f"{name} is no command; /help lists them")
        return False

    def _save(self, path: str) -> None:
        text = json.dumps({"messages": self.conversation.messages}, ensure_ascii=False, indent=2)
        try:
            with Path(path).expanduser().open("x", encoding="utf-8") as file:
                file.write(f"{text}\n")
        except (OSError, RuntimeError, ValueError) as error:  # no such user's home, or a name that none can have
            say(f"{path} is not written: {error.strerror if isinstance(error, OSError) else error}")
        else:
            say(f"written to {path}")

    def _turn(self, message: str) -> None:
        """Ask, show the answer and where it came from; a turn that fails, or is stopped before its first word, leaves nothing behind."""
        turns = self.conversation.turns
        turns.append({"role": "user", "content": message})
        writer, info, tokens = Writer(time.monotonic), None, 0
        text: list[str] = []
        try:
            with self.client.chat.completions.create(
                messages=self.conversation.messages, stream=True, conversation=CONVERSATION, **self.sampling
            ) as stream:
                for chunk in stream:
                    if chunk.hybrid and (chunk.hybrid.restarted or chunk.hybrid.continued):
                        writer.end_line()
                        say("[the answer broke off; " + ("the device goes on]" if chunk.hybrid.continued else "all of it again:]"))
                        text = text if chunk.hybrid.continued else []
                        continue
                    text.append(chunk.choices[0].delta.content or "")
                    writer.write(text[-1])
                    info = chunk.hybrid or info
                    tokens = chunk.usage.completion_tokens if chunk.usage else tokens
        except KeyboardInterrupt:
            writer.end_line()
            if not self.person:
                raise
            say("[stopped]")
        except HybridError as error:
            writer.end_line()
            turns.pop()
            if not self.person or isinstance(error, ClientClosed):
                raise
            click.echo(printable(f"hybrid: {error}"), err=True)
            return
        writer.end_line()
        if any(text):
            turns.append({"role": "assistant", "content": "".join(text)})
        else:
            turns.pop()
        if info is not None:
            say(f"[{_where(info)}: {writer.pace(tokens)}]")


def _where(info: HybridInfo) -> str:
    """`speculative, drafted (12 drafted, 4 cloud), 1,280 bytes sent`."""
    spans: dict[str, int] = {}
    for span in info.spans:
        spans[span.origin] = spans.get(span.origin, 0) + span.tokens
    writers = f" ({', '.join(f'{tokens} {origin}' for origin, tokens in spans.items())})" if len(spans) > 1 else ""
    sent = f", {info.bytes_sent:,} bytes sent" if info.bytes_sent else ""
    if info.redacted:
        sent = f", placeholders for {', '.join(f'{count} {kind}' for kind, count in sorted(info.redacted.items()))}{sent}"
    return f"{info.route}, {info.reason}{writers}{sent}"
