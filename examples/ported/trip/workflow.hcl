# A car, a hotel and a flight, in this order. If one of them cannot be booked, the
# bookings before it are cancelled: mock.do declares that mock.undo undoes it.
workflow "trip" {
  deadline = "10m"
  variable "name" { type = string }
  variable "seats" { default = 1 }

  step "car" {
    action = agent.mock.do
    input { value = "car for ${var.name}" }
  }

  step "hotel" {
    depends_on = [step.car]
    action     = agent.mock.do
    input { value = "hotel for ${var.name}" }
  }

  step "flight" {
    depends_on = [step.hotel]
    action     = agent.mock.do
    input {
      value = "flight for ${var.name}"
      fail  = var.seats > 0 ? null : { code = "sold_out", message = "no seat is left", permanent = true }
    }
  }

  output "booking" { value = [step.car.output.value, step.hotel.output.value, step.flight.output.value] }
}
