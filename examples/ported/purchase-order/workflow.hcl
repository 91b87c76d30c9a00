# An order has to be confirmed and shipped within 30 days. Otherwise the deadline of
# the run passes, and the order is cancelled: that is the undo of its first step.
#   engine signal ORDER confirmed
#   engine signal ORDER shipped --data '{"parcel":"P-1"}'
workflow "order" {
  deadline = var.patience
  unique { key = var.order }
  variable "order" { type = string }
  variable "patience" { default = "30d" }

  step "created" {
    action = agent.mock.do
    input { value = "${var.order} is created" }
  }

  step "confirmation" {
    depends_on = [step.created]
    wait { signal = "confirmed" }
  }

  step "confirmed" {
    depends_on   = [step.confirmation]
    action       = agent.mock.call
    compensation = "none"
    input { value = "${var.order} is confirmed" }
  }

  step "shipment" {
    depends_on = [step.confirmed]
    wait {
      signal  = "shipped"
      payload = object({ parcel = string })
    }
  }

  step "shipped" {
    action       = agent.mock.call
    compensation = "none"
    input { value = "${var.order} is on its way as ${step.shipment.output.parcel}" }
  }

  output "last" { value = step.shipped.output.value }
}
