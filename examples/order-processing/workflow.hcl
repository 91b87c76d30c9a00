# The process of an order. The application submits it in the transaction that stores the order. The
# run gets only the id of the order, and reads the rest from the application.

workflow "process_order" {
  description = "Reserves the article of an order, charges it and books its shipping."
  deadline    = "1h"
  unique { key = var.order_id } # one process for each order

  variable "order_id" { type = string }

  step "read" {
    action = agent.orders.read
    input { order = var.order_id }
    retry { max_attempts = 5 }
  }

  step "reserve" {
    action = agent.inventory.reserve
    input {
      order = var.order_id
      item  = step.read.output.item
    }
  }

  step "charge" {
    action     = agent.payment.charge
    depends_on = [step.reserve]
    input {
      order  = var.order_id
      amount = step.read.output.amount
    }
    retry { max_attempts = 5 }
  }

  # While the carriers do not answer, nobody should lose an order. After a few attempts the run waits
  # for an operator, who repeats this step and nothing else.
  step "book" {
    action     = agent.shipping.book
    depends_on = [step.charge]
    input {
      order   = var.order_id
      country = step.read.output.country
      parcels = [step.reserve.output.reservation_id]
    }
    retry {
      max_attempts     = 3
      initial_interval = "200ms"
      on_exhausted     = "park"
    }
  }

  output "tracking" { value = step.book.output.tracking }
}
