"""How much of the cloud users, tenants and models may still use, and what becomes of a request when that is too little."""

from .bucket import Reservation as Reservation
from .bucket import TokenBucket as TokenBucket
from .view import QuotaView as QuotaView
