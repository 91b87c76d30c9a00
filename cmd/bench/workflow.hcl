workflow "five" {
  deadline = "1h"
  variable "value" { type = string }

  step "a" {
    action       = agent.mock.call
    compensation = "none"
    timeout      = "30m"
    input { value = var.value }
  }
  step "b" {
    action       = agent.mock.call
    compensation = "none"
    timeout      = "30m"
    input { value = step.a.output.value }
  }
  step "c" {
    action       = agent.mock.call
    compensation = "none"
    timeout      = "30m"
    input { value = step.b.output.value }
  }
  step "d" {
    action       = agent.mock.call
    compensation = "none"
    timeout      = "30m"
    input { value = step.c.output.value }
  }
  step "e" {
    action       = agent.mock.call
    compensation = "none"
    timeout      = "30m"
    input { value = step.d.output.value }
  }
}
