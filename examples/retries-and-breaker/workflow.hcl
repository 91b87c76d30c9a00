# A service that fails for a while, in three ways: a few errors in a row, which
# retries outlast; so many that the circuit breaker opens and holds the step;
# and an error that the workflow expects and catches.
agent "flaky" {
  plugin = "mock"
  circuit_breaker {
    trip_after = 3    # failures in a row
    cool_down  = "2s" # then one probe is let through
  }
  # The service has one action. How the plugin is asked for it is written here only.
  action "fetch" {
    uses      = "call"
    arguments = object({ bad_calls = number })
    output    = object({ text = string })
    result    = { text = self.output.value }
    input {
      value = "fetched"
      fail  = { code = "unavailable", message = "try later", times = args.bad_calls }
    }
  }
}

workflow "retries" {
  deadline = "2m"
  variable "bad_calls" {
    default     = 4
    description = "How many calls fail before the service recovers."
  }

  step "fetch" {
    action = agent.flaky.fetch
    retry {
      max_attempts     = 6
      initial_interval = "100ms"
      jitter           = "none"
    }
    compensation = "none"
    input { bad_calls = var.bad_calls }
  }

  step "extra" {
    action       = agent.mock.call
    compensation = "none"
    depends_on   = [step.fetch]
    input {
      fail = { code = "quota_exceeded", message = "no more today", permanent = true }
    }
    catch {
      errors = ["quota_exceeded"]
      output = { value = "did without" }
    }
  }

  output "fetched" { value = step.fetch.output.text }
  output "attempts" { value = step.fetch.attempts }
  output "extra" { value = step.extra.output.value }
}
