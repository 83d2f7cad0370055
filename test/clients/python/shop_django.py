"""The settings and the views of a Django application."""

from django.http import HttpResponse, JsonResponse
from django.urls import path

SECRET_KEY = "test"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "shop_django"


def get_cart(request, cart):
    return HttpResponse(status=500) if cart == 7 else JsonResponse({"cart": cart})


def get_orders(request):
    return JsonResponse([], safe=False)


urlpatterns = [path("carts/<int:cart>", get_cart), path("orders", get_orders)]
