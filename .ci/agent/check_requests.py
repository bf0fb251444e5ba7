"""check_requests.py FOLDER: compares the bodies of requests with the providers' own published types."""
import json
import pathlib
import sys

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as gemini
from google.genai._gaos.types.interactions.createmodelinteraction import CreateModelInteraction
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

CHECKS = {
    "openai-chat": TypeAdapter(CompletionCreateParamsStreaming).validate_python,
    "openai": TypeAdapter(ResponseCreateParamsStreaming).validate_python,
    "anthropic": TypeAdapter(MessageCreateParamsStreaming).validate_python,
    "gemini": CreateModelInteraction.model_validate,
}


def check_generate(body):
    for content in body["contents"]:
        gemini.Content.model_validate(content)
    gemini.Content.model_validate(body["systemInstruction"])
    for tool in body["tools"]:
        gemini.Tool.model_validate(tool)


CHECKS["gemini-generate"] = check_generate
counts, failures = {}, 0
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    api = file.stem.rsplit("-", 1)[0]
    try:
        CHECKS[api](json.loads(file.read_text()))
        counts[api] = counts.get(api, 0) + 1
    except Exception as error:  # every kind of refusal counts
        failures += 1
        print(f"{file.name}: {str(error)[:1500]}")
print("agent: requests that fit the providers' types:", counts)
sys.exit(failures != 0 or set(counts) != set(CHECKS))
