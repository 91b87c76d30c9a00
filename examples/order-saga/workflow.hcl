# An order at a shop: reserve every article, charge the card, book shipping,
# tell the customer. If shipping is refused, the charge is refunded and the
# reservations are released, each exactly once.

variable "shop_url" {
  type        = string
  default     = "http://127.0.0.1:8088"
  description = "Where the shop is."
}

# Three remote services, all spoken to by the same plugin.
agent "inventory" {
  plugin = "http"
  config { base_url = "${var.shop_url}/inventory" }
}

agent "payment" {
  plugin = "http"
  config { base_url = "${var.shop_url}/payment" }
  circuit_breaker {
    trip_after = 5
    cool_down  = "5s"
  }
}

agent "shipping" {
  plugin = "http"
  config { base_url = "${var.shop_url}/shipping" }
}

agent "mail" {
  plugin = "http"
  config { base_url = "${var.shop_url}/mail" }
}

workflow "order" {
  description = "Takes an order to its end, or back to where it began."
  deadline    = "10m"
  unique { key = var.order_id } # applying the same order again attaches to its run

  variable "order_id" { type = string }
  variable "country" {
    type    = string
    default = "DE"
    validation {
      condition     = length(var.country) == 2
      error_message = "country must be a code of two letters."
    }
  }
  variable "email" {
    type      = string
    default   = "jo@example.com"
    sensitive = true # encrypted at rest, never shown
  }
  variable "items" {
    type        = map(object({ qty = number, price = number })) # price in cents
    default     = { mug = { qty = 2, price = 850 }, tee = { qty = 1, price = 1700 } }
    description = "What was ordered, by article."
  }
  locals { total = sum([for i in var.items : i.qty * i.price]) }

  # The shop honours the Idempotency-Key that the agent sends, hence
  # idempotent = true: a call whose answer was lost is sent again.
  step "reserve" {
    for_each     = var.items
    max_parallel = 8
    action       = agent.inventory.post
    idempotent   = true
    input {
      url    = "reserve"
      json   = { order = var.order_id, sku = each.key, qty = each.value.qty }
      errors = { "409" = "out_of_stock" }
    }
    # Undo by the key of the call: it works also if nobody knows whether the
    # call came through.
    compensate {
      action     = agent.inventory.post
      idempotent = true
      input {
        url  = "release"
        json = { order = var.order_id, key = self.key }
      }
    }
  }

  step "charge" {
    action     = agent.payment.post
    depends_on = [step.reserve]
    idempotent = true
    timeout    = "10s"
    deadline   = "2m"
    retry {
      max_attempts     = 5
      initial_interval = "500ms"
    }
    input {
      url    = "charge"
      json   = { order = var.order_id, amount = local.total }
      errors = { "402" = "card_declined" }
    }
    output_type = object({ json = object({ charge_id = string }) })
    compensate {
      action     = agent.payment.post
      idempotent = true
      input {
        url  = "refund"
        json = { order = var.order_id, key = self.key, reason = "rolled back: ${failure.code}" }
      }
    }
  }

  step "book" {
    action     = agent.shipping.post
    depends_on = [step.charge]
    idempotent = true
    input {
      url = "book"
      json = {
        order   = var.order_id
        country = var.country
        parcels = [for r in step.reserve : r.output.json.reservation_id]
      }
      errors = { "422" = "no_carrier" }
    }
    output_type = object({ json = object({ booking_id = string, tracking = string }) })
    compensate {
      action     = agent.shipping.post
      idempotent = true
      input {
        url  = "cancel"
        json = { order = var.order_id, key = self.key }
      }
    }
  }

  step "tell" {
    action       = agent.mail.post
    idempotent   = true
    compensation = "none"
    input {
      url  = "send"
      json = { order = var.order_id, to = var.email, text = "On its way: ${step.book.output.json.tracking}." }
    }
    catch { errors = ["*"] } # a lost message must not undo a paid order
  }

  output "charge" { value = step.charge.output.json.charge_id }
  output "tracking" { value = step.book.output.json.tracking }
}
