# The four services of the shop. Each action says how the shop is called: the
# workflow knows names and types, and neither paths nor statuses.

variable "shop_url" {
  type        = string
  default     = "http://127.0.0.1:8088"
  description = "Where the shop is."
}

# The shop honours the Idempotency-Key that the plugin http sends, hence
# idempotent = true: a call whose answer was lost is sent again.
agent "inventory" {
  plugin     = "http"
  idempotent = true
  config { base_url = "${var.shop_url}/inventory" }

  action "reserve" {
    uses           = "post"
    arguments      = object({ order = string, sku = string, qty = optional(number, 1) })
    output         = object({ reservation_id = string })
    result         = { reservation_id = self.output.json.reservation_id }
    compensated_by = "release"
    input {
      url    = "reserve"
      json   = { order = args.order, sku = args.sku, qty = args.qty }
      errors = { "409" = "out_of_stock" }
    }
  }

  # Undo by the key of the call: it works also if nobody knows whether the
  # call came through.
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
  circuit_breaker {
    trip_after = 5
    cool_down  = "5s"
  }

  action "charge" {
    uses      = "post"
    arguments = object({ order = string, amount = number })
    output    = object({ charge_id = string })
    result    = { charge_id = self.output.json.charge_id }
    timeout   = "10s"
    input {
      url    = "charge"
      json   = { order = args.order, amount = args.amount }
      errors = { "402" = "card_declined" }
    }
  }

  action "refund" {
    uses      = "post"
    by_key    = true
    arguments = object({ order = string, reason = string })
    input {
      url  = "refund"
      json = { order = args.order, key = self.key, reason = args.reason }
    }
  }
}

agent "shipping" {
  plugin     = "http"
  idempotent = true
  config { base_url = "${var.shop_url}/shipping" }

  action "book" {
    uses           = "post"
    arguments      = object({ order = string, country = string, parcels = list(string) })
    output         = object({ booking_id = string, tracking = string })
    result         = { booking_id = self.output.json.booking_id, tracking = self.output.json.tracking }
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

agent "mail" {
  plugin     = "http"
  idempotent = true
  config { base_url = "${var.shop_url}/mail" }

  action "send" {
    uses      = "post"
    arguments = object({ order = string, to = string, text = string })
    input {
      url  = "send"
      json = { order = args.order, to = args.to, text = args.text }
    }
  }
}
