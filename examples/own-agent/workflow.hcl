# Seats in a theatre are held by an agent of our own; paying is played by the
# built-in mock agent, and can be told to fail.
variable "house" {
  type        = string
  description = "Directory that stands for the theatre."
}

agent "theatre" {
  version = "~> 0.1"
  config { dir = var.house }
}

workflow "evening" {
  deadline = "5m"
  variable "seats" {
    type    = set(string)
    default = ["B7", "B8"]
  }
  variable "card" {
    default = "good"
    validation {
      condition     = contains(["good", "bad"], var.card)
      error_message = "card must be good or bad."
    }
  }

  step "hold" {
    for_each = var.seats
    action   = agent.theatre.hold
    input { seat = each.key }
  } # theatre.hold declares compensated_by = "release": undo is automatic

  step "pay" {
    action     = agent.mock.do
    depends_on = [step.hold]
    input {
      value = "paid for ${length(var.seats)} seats"
      fail  = var.card == "good" ? null : { code = "card_declined", permanent = true }
    }
  }

  output "tickets" { value = { for seat, hold in step.hold : seat => hold.output.ticket } }
}
