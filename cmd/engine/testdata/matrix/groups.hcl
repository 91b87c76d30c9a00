# Groups and steps with for_each.
workflow "each" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    for_each   = toset(["a", "b"])
    action     = agent.mock.do
    timeout    = "2h"
    input {
      value = each.key
      hold  = "${run.id}.gate"
    }
  }
}

workflow "each_parked" {
  deadline = "5h"
  compensation { mode = "manual" }
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on   = [step.before]
    for_each     = { a = true, b = false, "c d" = true }
    max_failures = 1
    action       = agent.mock.do
    input {
      value = each.key
      fail  = each.value ? { code = "no", permanent = true } : null
    }
  }
}

workflow "each_wait" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    for_each   = { a = "go", "b c" = "stop" }
    wait { signal = each.value }
  }
}

workflow "group" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on = [step.before]
    step "first" {
      action = agent.mock.do
      input { value = step.before.output.value }
    }
    step "in" {
      depends_on = [step.first]
      wait { signal = "go" }
    }
    output "first" { value = step.first.output.value }
  }
  output "first" { value = group.at.output.first }
}

workflow "group_each" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on   = [step.before]
    for_each     = toset(["a", "b"])
    max_failures = 1
    step "first" {
      action = agent.mock.do
      input { value = each.key }
    }
    step "in" {
      depends_on = [step.first]
      wait { signal = "go" }
    }
  }
}

workflow "group_group" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on = [step.before]
    step "first" {
      action = agent.mock.do
      input { value = 2 }
    }
    group "deep" {
      depends_on = [step.first]
      step "second" {
        action = agent.mock.do
        input { value = 3 }
      }
      step "in" {
        depends_on = [step.second]
        wait { signal = "go" }
      }
    }
  }
}

workflow "group_child" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on = [step.before]
    step "in" {
      workflow = workflow.leaf
      input { key = "g" }
    }
  }
}

workflow "group_room" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on = [step.before]
    concurrency {
      limit = 1
      key   = var.name
    }
    step "first" {
      action = agent.mock.do
      input { value = 2 }
    }
    step "in" {
      depends_on = [step.first]
      wait { signal = "go" }
    }
  }
}

workflow "group_parked" {
  deadline = "5h"
  compensation { mode = "manual" }
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on = [step.before]
    step "first" {
      action = agent.mock.do
      input { value = 2 }
    }
    step "in" {
      depends_on = [step.first]
      action     = agent.mock.do
      input {
        value = 3
        fail  = { code = "no", permanent = true }
      }
    }
  }
}

workflow "group_unknown" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on = [step.before]
    for_each   = toset(["a", "b c"])
    group "deep" {
      step "in" {
        action = agent.mock.call_once
        input {
          value = 3
          fail  = { code = "lost", unknown = true }
        }
        compensate {
          action = agent.mock.call
          input { value = self.output.value }
        }
      }
    }
  }
}

workflow "group_stuck" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on = [step.before]
    step "first" {
      action = agent.mock.do
      input {
        value = 2
        undo  = { fail = { code = "no", permanent = true } }
      }
    }
    step "in" {
      depends_on = [step.first]
      action     = agent.mock.do
      input {
        value = 3
        fail  = { code = "no", permanent = true }
      }
    }
  }
}

workflow "group_call" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  group "at" {
    depends_on = [step.before]
    step "in" {
      action  = agent.mock.do_once
      timeout = "2h"
      input {
        value = 2
        hold  = "${run.id}.gate"
      }
    }
  }
  notify {
    on     = ["parked", "compensated"]
    action = agent.mock.call
    input { value = run.status }
  }
}
