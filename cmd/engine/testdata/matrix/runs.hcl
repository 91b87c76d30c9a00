# Features of the run as a whole: its keys, its limits, its announcements.
variable "name" { default = "nobody" }

workflow "deadline" {
  deadline = "2030-01-31T18:00:00Z"
  compensation { deadline = "3h" }
  retention = "1d"
  priority  = 60
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
}

workflow "late" {
  deadline = "1s"
  compensation { mode = "manual" }
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
}

workflow "pivot" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "point" {
    depends_on = [step.before]
    action     = agent.mock.do
    pivot      = true
    input { value = 2 }
  }
  step "at" {
    depends_on = [step.point]
    wait { signal = "go" }
    catch { errors = ["*"] }
  }
  step "after" {
    depends_on = [step.at]
    action     = agent.mock.echo
    input { value = 3 }
  }
}

workflow "pivot_open" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    action     = agent.mock.do
    pivot      = true
    timeout    = "2h"
    input {
      value = 2
      hold  = "${run.id}.gate"
    }
  }
}

workflow "pivot_parked" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "point" {
    depends_on = [step.before]
    action     = agent.mock.do
    pivot      = true
    input { value = 2 }
  }
  step "at" {
    depends_on = [step.point]
    action     = agent.mock.echo
    input { value = 3 }
    fail_when {
      condition     = self.output.value == 3
      error_message = "Three is too much."
      error_code    = "three"
      permanent     = true
    }
  }
}

workflow "none" {
  deadline = "5h"
  step "before" {
    action       = agent.mock.do
    compensation = "none"
    input { value = 1 }
  }
  step "other" {
    action = agent.mock.do
    input { value = 2 }
  }
  step "at" {
    depends_on = [step.before, step.other]
    wait { signal = "go" }
  }
}

workflow "sensitive" {
  deadline = "5h"
  variable "token" {
    type      = string
    default   = "hunter2hunter2"
    sensitive = true
  }
  step "before" {
    action = agent.mock.do
    input { value = var.token }
  }
  step "at" {
    depends_on = [step.before]
    wait {
      signal  = "go"
      payload = any
    }
  }
  step "after" {
    depends_on = [step.at]
    action     = agent.mock.do
    input { value = "${var.token} again" }
  }
  output "token" {
    value     = step.after.output.value
    sensitive = true
  }
}

workflow "notify" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
  notify {
    on     = ["succeeded", "failed", "compensated", "cancelled", "parked", "compensation_failed", "overdue"]
    action = agent.mock.call
    input { value = "${run.id} is ${run.status}: ${failure.step} ${failure.code}" }
  }
}

workflow "unique" {
  deadline = "5h"
  unique {
    key         = "key of ${run.id}"
    on_conflict = "reject"
  }
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
}

workflow "replace" {
  deadline = "5h"
  unique {
    key         = var.name
    scope       = "active"
    on_conflict = "replace"
  }
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
  step "fails" {
    depends_on = [step.at]
    action     = agent.mock.do
    input {
      value = 3
      fail  = { code = "no", permanent = true }
    }
  }
}

workflow "room" {
  deadline = "5h"
  concurrency {
    limit = 1
    key   = var.name
  }
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
}

workflow "event" {
  deadline = "5h"
  variable "order" { type = string }
  unique { key = var.order }
  on_event "placed" {
    type      = "com.example.placed"
    variables = { order = event.data.order }
  }
  step "before" {
    action = agent.mock.do
    input { value = var.order }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
}
