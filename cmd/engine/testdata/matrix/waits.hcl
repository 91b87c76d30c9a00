# Each workflow is a feature. Step "before" has an effect that can be undone. Step "at" is the feature.
agent "mock" {
  config { ledger = "LEDGER" }
}
agent "slow" {
  plugin     = "mock"
  rate_limit = "1/d"
  config { ledger = "LEDGER" }
}
agent "narrow" {
  plugin          = "mock"
  max_concurrency = 1
  config { ledger = "LEDGER" }
}

workflow "wait" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
  step "after" {
    depends_on = [step.at]
    action     = agent.mock.do
    input { value = 2 }
  }
}

workflow "typed" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    deadline   = "4h"
    wait {
      signal     = ["go", "no"]
      payload    = object({ by = optional(string, "ann") })
      on_timeout = "continue"
    }
    postcondition {
      condition     = step.before.output.value == 1 && self.signal != "no"
      error_message = "The signal says no."
    }
  }
  output "by" { value = try(step.at.output.by, null) }
}

workflow "timer" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    timer { duration = "2h" }
  }
}

workflow "call" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    timeout    = "2h"
    input {
      value = 2
      hold  = "${run.id}.gate"
    }
  }
}

workflow "call_once" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do_once
    timeout    = "2h"
    input {
      value = 2
      hold  = "${run.id}.gate"
    }
  }
}

workflow "undoing" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    input {
      value = 2
      undo  = { hold = "${run.id}.gate" }
    }
    compensate {
      action  = agent.mock.undo
      timeout = "2h"
      input {
        undo = { hold = "${run.id}.gate" }
      }
    }
  }
  step "fails" {
    depends_on = [step.at]
    action     = agent.mock.do
    input {
      value = 3
      fail  = { code = "no", permanent = true }
    }
  }
}

workflow "value" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    value = "got ${step.before.output.value}"
    precondition {
      condition     = step.before.status == "succeeded"
      error_message = "It has not begun."
    }
  }
  step "gate" {
    depends_on = [step.at]
    wait { signal = "go" }
  }
  output "at" { value = step.at.output }
}

workflow "catch" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "sold_out", permanent = true }
    }
    catch {
      errors = ["sold_out"]
      output = { value = self.error.code }
    }
  }
  step "gate" {
    depends_on = [step.at]
    wait { signal = "go" }
  }
  step "after" {
    depends_on = [step.gate]
    action     = agent.mock.do
    input { value = step.at.output.value }
  }
}

workflow "skipped" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    when   = step.before.output.value == 2
    action = agent.mock.do
    input { value = 2 }
  }
  step "gate" {
    depends_on = [step.at]
    wait { signal = "go" }
    catch { errors = ["*"] }
  }
}

workflow "inputs" {
  deadline = "5h"
  step "before" {
    action = agent.mock.call
    input { value = { id = "a", n = 2 } }
    compensate {
      action = agent.mock.call
      input { value = [self.output.value.id, self.input.value, failure.code, self.key] }
    }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
  step "after" {
    depends_on = [step.at]
    action     = agent.mock.call_once
    input { value = 2 }
    compensate {
      action = agent.mock.call
      input { value = self.output.value }
    }
  }
}

workflow "collect" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = ["go", "end"] }
    repeat {
      until          = self.signal == "end"
      max_iterations = 3
      collect        = { at = self.signal, before = length(self.collected) }
    }
    catch { errors = ["max_iterations"] }
  }
  output "all" { value = step.at.collected }
}

workflow "poll" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.call
    input { value = try(self.previous.value, 0) + 1 }
    repeat {
      max_iterations = 2
      interval       = "2h"
      collect        = self.output.value
    }
    compensate {
      action = agent.mock.call
      input { value = self.collected }
    }
  }
}

workflow "backoff" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "unavailable" }
    }
    retry {
      initial_interval = "1h"
      max_interval     = "2h"
      jitter           = "none"
    }
  }
}

workflow "cool_down" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "unavailable" }
    }
    retry {
      max_attempts = 1
      on_exhausted = "cool_down"
      cool_down    = "2h"
    }
  }
}

workflow "rate" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on   = [step.before]
    action       = agent.slow.do
    compensation = "none"
    input { value = 2 }
  }
}

workflow "slot" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on   = [step.before]
    action       = agent.narrow.call
    timeout      = "4h"
    priority     = 70
    compensation = "none"
    input {
      value = 2
      hold  = "${run.id}.gate"
    }
  }
}
