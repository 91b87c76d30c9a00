# A visa, a trip and an insurance. The trip is a workflow of its own: if it cannot be
# booked, it cancels its own bookings, and a train is booked instead. If the insurance
# fails, the whole trip is cancelled, and the visa.
workflow "journey" {
  deadline = "10m"
  variable "name" { type = string }
  variable "seats" { default = 1 }
  variable "insured" { default = true }

  step "visa" {
    action = agent.mock.do
    input { value = "visa for ${var.name}" }
  }

  step "trip" {
    workflow   = workflow.trip
    depends_on = [step.visa]
    input {
      name  = var.name
      seats = var.seats
    }
    catch {
      errors = ["sold_out"]
      output = { booking = "none" }
    }
  }

  step "train" {
    when   = step.trip.status == "caught"
    action = agent.mock.do
    input { value = "train for ${var.name}" }
  }

  step "insure" {
    depends_on = [step.trip, step.train]
    action     = agent.mock.do
    input {
      value = "insurance for ${var.name}"
      fail  = var.insured ? null : { code = "refused", message = "too risky", permanent = true }
    }
  }

  output "booking" { value = step.trip.output.booking }
  output "train" { value = step.train.status }
}

workflow "trip" {
  deadline = "5m"
  variable "name" { type = string }
  variable "seats" { type = number }

  step "hotel" {
    action = agent.mock.do
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

  output "booking" { value = "${step.hotel.output.value}, ${step.flight.output.value}" }
}
