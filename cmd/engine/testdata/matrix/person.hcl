# Features that need a person.
workflow "parked" {
  deadline = "5h"
  compensation { mode = "manual" }
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "no", permanent = true }
    }
  }
  step "after" {
    depends_on = [step.at]
    action     = agent.mock.do
    input { value = 3 }
  }
}

workflow "fail_when" {
  deadline = "5h"
  compensation { mode = "manual" }
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.echo
    input { value = 2 }
    fail_when {
      condition     = self.output.value == 2
      error_message = "Two is refused."
      error_code    = "refused_two"
      permanent     = true
    }
  }
}

workflow "postcondition" {
  deadline = "5h"
  compensation { mode = "manual" }
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    input { value = 2 }
    postcondition {
      condition     = self.output.value == 1
      error_message = "Two is wrong."
    }
  }
}

workflow "exhausted" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    deadline   = "4h"
    input {
      value = 2
      fail  = { code = "unavailable" }
    }
    retry {
      max_attempts = 1
      on_exhausted = "park"
    }
  }
}

workflow "expression" {
  deadline = "5h"
  compensation { mode = "manual" }
  step "before" {
    action = agent.mock.do
    input { value = { a = 1 } }
  }
  step "at" {
    action = agent.mock.do
    input { value = step.before.output.value.b }
  }
}

workflow "unknown" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.call_once
    input {
      value = 1
      fail  = { code = "lost", unknown = true }
    }
    compensate {
      action = agent.mock.call
      input { value = self.output.value }
    }
  }
  step "after" {
    depends_on = [step.at]
    action     = agent.mock.do
    input { value = step.at.output.value }
  }
}

workflow "unknown_pivot" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.call_once
    pivot      = true
    input {
      value = 1
      fail  = { code = "lost", unknown = true }
    }
  }
}

workflow "stuck" {
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
      undo  = { fail = { code = "no", permanent = true } }
    }
  }
  step "after" {
    depends_on = [step.at]
    action     = agent.mock.do
    input {
      value = 3
      fail  = { code = "no", permanent = true }
    }
  }
}

workflow "undo_unknown" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.call
    input { value = 2 }
    compensate {
      action = agent.mock.call_once
      input {
        value = self.output.value
        fail  = { code = "lost", unknown = true }
      }
    }
  }
  step "after" {
    depends_on = [step.at]
    action     = agent.mock.do
    input {
      value = 3
      fail  = { code = "no", permanent = true }
    }
  }
}
