# The workload: five steps in a row that hand on what they were given.
workflow "five" {
  deadline = "1h"
  variable "value" { type = string }

  step "a" {
    action       = agent.mock.echo
    compensation = "none"
    timeout      = "30m"
    input { value = var.value }
  }

  step "b" {
    action       = agent.mock.echo
    compensation = "none"
    timeout      = "30m"
    input { value = step.a.output.value }
  }

  step "c" {
    action       = agent.mock.echo
    compensation = "none"
    timeout      = "30m"
    input { value = step.b.output.value }
  }

  step "d" {
    action       = agent.mock.echo
    compensation = "none"
    timeout      = "30m"
    input { value = step.c.output.value }
  }

  step "e" {
    action       = agent.mock.echo
    compensation = "none"
    timeout      = "30m"
    input { value = step.d.output.value }
  }
}

# Five steps of which the fourth fails for good: three are undone.
workflow "undone" {
  deadline = "1h"
  variable "value" { type = string }

  step "a" {
    action  = agent.mock.do
    timeout = "30m"
    input { value = var.value }
  }

  step "b" {
    action  = agent.mock.do
    timeout = "30m"
    input { value = step.a.output.value }
  }

  step "c" {
    action  = agent.mock.do
    timeout = "30m"
    input { value = step.b.output.value }
  }

  step "d" {
    action  = agent.mock.do
    timeout = "30m"
    input {
      value = step.c.output.value
      fail  = { code = "no", permanent = true }
    }
  }

  step "e" {
    action  = agent.mock.do
    timeout = "30m"
    input { value = step.d.output.value }
  }
}

# A run whose only call does not end while anybody looks.
workflow "flying" {
  deadline = "2h"
  variable "value" { type = string }
  step "a" {
    action       = agent.mock.call
    compensation = "none"
    timeout      = "1h"
    input {
      value   = var.value
      latency = "50m"
    }
  }
}

# A run that waits for its next attempt.
workflow "backoff" {
  deadline = "3h"
  variable "value" { type = string }
  step "a" {
    action       = agent.mock.call
    compensation = "none"
    timeout      = "1m"
    retry {
      max_attempts     = 3
      initial_interval = "1h"
      max_interval     = "1h"
    }
    input {
      value = var.value
      fail  = { code = "unavailable" }
    }
  }
}

# A run that nobody but a person can help.
workflow "parked" {
  deadline = "1h"
  variable "value" { type = string }
  step "a" {
    action  = agent.mock.call_once
    timeout = "1m"
    input {
      value = var.value
      fail  = { code = "lost", unknown = true }
    }
    compensate {
      action = agent.mock.call
      input { value = self.output.value }
    }
  }
}

# A run that waits for a signal and calls no agent.
workflow "waiting" {
  deadline = "3h"
  variable "value" { type = string }
  step "a" {
    wait { signal = "go" }
  }
}

# A run that waits for a time and calls no agent.
workflow "timer" {
  deadline = "3h"
  variable "value" { type = string }
  step "a" {
    timer { duration = "5s" }
  }
}
