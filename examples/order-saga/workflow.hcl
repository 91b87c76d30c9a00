# An order at a shop: reserve every article, charge the card, book shipping,
# tell the customer. If shipping is refused, the charge is refunded and the
# reservations are released, each exactly once.
# services.hcl says how the shop is called.

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

  step "reserve" {
    for_each     = var.items
    max_parallel = 8
    action       = agent.inventory.reserve
    input {
      order = var.order_id
      sku   = each.key
      qty   = each.value.qty
    }
  } # inventory.reserve names its undo: release

  step "charge" {
    action     = agent.payment.charge
    depends_on = [step.reserve]
    deadline   = "2m"
    retry {
      max_attempts     = 5
      initial_interval = "500ms"
    }
    input {
      order  = var.order_id
      amount = local.total
    }
    compensate {
      action = agent.payment.refund
      input {
        order  = var.order_id
        reason = "rolled back: ${failure.code}"
      }
    }
  }

  step "book" {
    action     = agent.shipping.book
    depends_on = [step.charge]
    input {
      order   = var.order_id
      country = var.country
      parcels = [for r in step.reserve : r.output.reservation_id]
    }
  }

  step "tell" {
    action       = agent.mail.send
    compensation = "none"
    input {
      order = var.order_id
      to    = var.email
      text  = "On its way: ${step.book.output.tracking}."
    }
    catch { errors = ["*"] } # a lost message must not undo a paid order
  }

  output "charge" { value = step.charge.output.charge_id }
  output "tracking" { value = step.book.output.tracking }
}
