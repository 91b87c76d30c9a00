# A manager is asked. If no answer comes in time, the manager's manager is asked.
#   engine signal REQUEST approval --data '{"by":"maria"}'
workflow "approval" {
  deadline = "30d"
  unique { key = var.request }
  variable "request" { type = string }
  variable "manager" { default = "maria" }
  variable "director" { default = "dana" }
  variable "patience" { default = "72h" }

  step "ask" {
    action       = agent.mock.call
    compensation = "none"
    input { value = "${var.manager}, please approve ${var.request}" }
  }

  step "answer" {
    depends_on = [step.ask]
    deadline   = var.patience
    wait {
      signal     = "approval"
      payload    = object({ by = string })
      on_timeout = "continue"
    }
  }

  step "process" {
    when         = !step.answer.timed_out
    action       = agent.mock.call
    compensation = "none"
    input { value = "${var.request} is approved by ${try(step.answer.output.by, "")}" }
  }

  step "escalate" {
    when         = step.answer.timed_out
    action       = agent.mock.call
    compensation = "none"
    input { value = "${var.director}, please approve ${var.request}" }
  }

  output "last" { value = try(step.process.output.value, step.escalate.output.value) }
}
