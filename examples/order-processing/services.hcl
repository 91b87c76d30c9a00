# The services of the order process: the application that takes orders, and the inventory, payment
# and shipping of a shop.

variable "orders_url" {
  type        = string
  description = "Where the order application answers."
}

variable "shop_url" {
  type        = string
  description = "Where the shop answers."
}

agent "orders" {
  plugin = "http"
  config { base_url = var.orders_url }

  action "read" {
    uses      = "get"
    arguments = object({ order = string })
    output    = object({ item = string, amount = number, country = string })
    result    = { item = self.output.json.item, amount = self.output.json.amount, country = self.output.json.country }
    input { url = "orders/${args.order}" }
  }
}

agent "inventory" {
  plugin     = "http"
  idempotent = true # the shop honours the Idempotency-Key that the plugin sends
  config { base_url = "${var.shop_url}/inventory" }

  action "reserve" {
    uses           = "post"
    arguments      = object({ order = string, item = string })
    output         = object({ reservation_id = string })
    result         = { reservation_id = self.output.json.reservation_id }
    compensated_by = "release"
    input {
      url    = "reserve"
      json   = { order = args.order, sku = args.item, qty = 1 }
      errors = { "409" = "out_of_stock" }
    }
  }

  # Undo by the key of the call: it also works if nobody knows whether the call arrived.
  action "release" {
    uses      = "post"
    by_key    = true
    arguments = object({ order = string })
    input {
      url  = "release"
      json = { order = args.order, key = self.key }
    }
  }
}

agent "payment" {
  plugin     = "http"
  idempotent = true
  config { base_url = "${var.shop_url}/payment" }

  action "charge" {
    uses           = "post"
    arguments      = object({ order = string, amount = number })
    output         = object({ charge_id = string })
    result         = { charge_id = self.output.json.charge_id }
    compensated_by = "refund"
    timeout        = "10s"
    input {
      url    = "charge"
      json   = { order = args.order, amount = args.amount }
      errors = { "402" = "card_declined" }
    }
  }

  action "refund" {
    uses      = "post"
    by_key    = true
    arguments = object({ order = string })
    input {
      url  = "refund"
      json = { order = args.order, key = self.key, reason = "rolled back" }
    }
  }
}

agent "shipping" {
  plugin     = "http"
  idempotent = true
  config { base_url = "${var.shop_url}/shipping" }
  circuit_breaker {
    trip_after = 2
    cool_down  = "2s"
  }

  action "book" {
    uses           = "post"
    arguments      = object({ order = string, country = string, parcels = list(string) })
    output         = object({ tracking = string })
    result         = { tracking = self.output.json.tracking }
    compensated_by = "cancel"
    input {
      url    = "book"
      json   = { order = args.order, country = args.country, parcels = args.parcels }
      errors = { "422" = "no_carrier" }
    }
  }

  action "cancel" {
    uses      = "post"
    by_key    = true
    arguments = object({ order = string })
    input {
      url  = "cancel"
      json = { order = args.order, key = self.key }
    }
  }
}
