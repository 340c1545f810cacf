"""Makes tests/golden/templates/*.json: what transformers renders from the templates beside them.

    pip install transformers jinja2 && python3 tests/reference/chat_templates.py

The templates are written in the manner of published ones (their constructs, not their words). Each is rendered for
several conversations, with and without an opened answer, and with the options that it reads. Where a template refuses,
the reason is kept. Today's date is written as DATE.
"""

import datetime
import itertools
import json
import pathlib
import sys

import jinja2
import transformers
from transformers.utils.chat_template_utils import render_jinja_template

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "golden" / "templates"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def turns(*contents, system=None):
    roles = itertools.cycle(["user", "assistant"])
    first = [] if system is None else [{"role": "system", "content": system}]
    return first + [{"role": role, "content": content} for role, content in zip(roles, contents)]


CONVERSATIONS = {
    "one question": turns("What is 2 + 2?"),
    "a system message": turns("What is 2 + 2?", system=" Be brief.\n"),
    "several turns": turns("Hi", "  Hello!\n", "And <b>'now'</b> & then? ", system="You count."),
    "thinking": turns("1+1?", "<think>\n\nOne and one.\n</think>\n\n2", "2+2?", "<think>\nTwice two.\n</think>\n\n4"),
    "thinking, then a question": turns("1+1?", "<think>One.</think>\n2", "And 3?", system="Sum. /no_think"),
    "unicode": turns("数学：½ + ½ = ？\n\u00a0🦀 a\u0301", "\u3000一\u3000", "e\u2028x\t"),
    "empty": turns("", "", " \n ", system=""),
    "tags": turns("Use <Parallel> and </Path>.", "<Parallel><Path>a</Path></Parallel>\n<Summary>b</Summary>", "</think>"),
    "two questions in a row": [*turns("One?"), *turns("Two?")],
    "a system message late": [*turns("One?", "Yes."), *turns("Two?", system="Be kind.")],
    "an unknown role": [{"role": "tool", "content": '{"a": 1}'}, *turns("So?")],
}

TOOL = {
    "type": "function",
    "function": {"name": "sum", "description": "Adds: <a> & 'b'", "parameters": {"type": "object", "n": [1, 2.5, None, True]}},
}  # fmt: skip
# Options, and for how many of the conversations they are tried.
OPTIONS = {
    "none": ({}, 11),
    "no thinking": ({"enable_thinking": False}, 6),
    "thinking": ({"enable_thinking": True}, 6),
    "a date": ({"date_string": "03 Feb 2025"}, 2),
    "tools": ({"tools": [TOOL, TOOL]}, 3),
    "tools for the system": ({"tools": [TOOL], "tools_in_user_message": False}, 2),
}


def render(source, messages, opened, options):
    options = dict(options)
    tools = {"tools": options.pop("tools")} if "tools" in options else {}
    try:
        text = render_jinja_template([messages], chat_template=source, add_generation_prompt=opened, **tools, **TOKENS, **options)[0][0]
    except jinja2.TemplateError as error:
        return {"refused": str(error)}
    return {"text": text.replace(datetime.datetime.now().strftime("%d %b %Y"), "DATE")}


def cases(source):
    """All that differ: an option that a template does not read gives no new case."""
    known = set()
    for options, (values, count) in OPTIONS.items():
        for conversation, messages in itertools.islice(CONVERSATIONS.items(), count):
            for opened in [True, False]:
                result = render(source, messages, opened, values)
                if (conversation, opened, *result.values()) not in known:
                    known.add((conversation, opened, *result.values()))
                    yield {"conversation": conversation, "options": options, "opened": opened, **result}


def main(folder=FOLDER):
    folder.mkdir(parents=True, exist_ok=True)
    made_by = {"program": "tests/reference/chat_templates.py", "transformers": transformers.__version__}
    made_by["jinja2"] = jinja2.__version__
    options = {name: values for name, (values, _) in OPTIONS.items()}
    write(folder / "inputs.json", {"made_by": made_by, "tokens": TOKENS, "conversations": CONVERSATIONS, "options": options})
    for template in sorted(FOLDER.glob("*.jinja")):
        write(folder / f"{template.stem}.json", list(cases(template.read_text())))


def write(path, value):
    path.write_text(json.dumps(value).replace('{"conversation"', '\n{"conversation"') + "\n", newline="\n")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
