# Work on an order is started elsewhere, and a signal says when it is done. If it takes
# too long, the customer gets a mail, and the run waits on.
#   engine signal ORDER processed
workflow "order" {
  deadline = "30d"
  unique { key = var.order }
  variable "order" { type = string }
  variable "threshold" { default = "1d" }

  step "start" {
    action = agent.mock.do
    input { value = var.order }
  }

  step "in_time" {
    depends_on = [step.start]
    deadline   = var.threshold
    wait {
      signal     = "processed"
      on_timeout = "continue"
    }
  }

  step "mail" {
    when         = step.in_time.timed_out
    action       = agent.mock.call
    compensation = "none"
    input { value = "${var.order} takes longer than we thought" }
  }

  step "late" {
    when       = step.in_time.timed_out
    depends_on = [step.mail]
    wait { signal = "processed" }
  }

  output "late" { value = step.in_time.timed_out }
  output "mailed" { value = step.mail.status == "succeeded" }
  output "ended_by" { value = try(coalesce(step.in_time.signal, step.late.signal), null) }
}
