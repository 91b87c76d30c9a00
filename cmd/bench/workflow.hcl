workflow "five" {
  deadline = "10m"
  variable "value" { type = string }

  step "a" {
    action       = agent.mock.call
    compensation = "none"
    input { value = var.value }
  }
  step "b" {
    action       = agent.mock.call
    compensation = "none"
    input { value = step.a.output.value }
  }
  step "c" {
    action       = agent.mock.call
    compensation = "none"
    input { value = step.b.output.value }
  }
  step "d" {
    action       = agent.mock.call
    compensation = "none"
    input { value = step.c.output.value }
  }
  step "e" {
    action       = agent.mock.call
    compensation = "none"
    input { value = step.d.output.value }
  }
}
