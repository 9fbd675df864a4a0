"""The SDK: one chat call that works with and without a network, keeps private things on the device, and says where it answered.

client = HybridClient("smollm2-135m", cloud="http://127.0.0.1:8000")
answer = client.chat.completions.create(messages=[{"role": "user", "content": "Hello!"}], max_tokens=32)
answer.choices[0].message.content, answer.hybrid.route, answer.hybrid.bytes_sent
"""

from .async_client import AsyncHybridClient as AsyncHybridClient
from .clouds import CloudTarget as CloudTarget
from .sync_client import HybridClient as HybridClient
