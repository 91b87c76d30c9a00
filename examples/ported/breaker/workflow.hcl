# A service that fails three times in a row is left alone for a while: the circuit of
# its agent opens and holds every step that calls it.
agent "target" {
  plugin = "mock"
  circuit_breaker {
    trip_after = 3
    cool_down  = "1s"
  }
}

workflow "call" {
  deadline = "10m"
  variable "failures" { default = 3 }

  step "call" {
    action       = agent.target.call
    compensation = "none"
    timeout      = "12s"
    deadline     = "5m"
    retry {
      max_attempts     = 4
      initial_interval = "100ms"
      multiplier       = 1.5
    }
    input {
      value = "closed"
      fail  = { code = "unavailable", times = var.failures }
    }
  }

  output "circuit" { value = step.call.output.value }
  output "attempts" { value = step.call.attempts }
}
