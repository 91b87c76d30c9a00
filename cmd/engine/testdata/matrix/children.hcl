# Child runs, declared actions and libraries.
library "shop" { source = "../shared" }

agent "desk" {
  plugin     = "mock"
  idempotent = true
  config { ledger = "LEDGER" }
  action "book" {
    uses           = "do"
    arguments      = object({ hotel = string, nights = optional(number, 1) })
    output         = object({ booking = string })
    result         = { booking = self.output.value.hotel }
    compensated_by = "cancel"
    input { value = { hotel = args.hotel, nights = args.nights } }
  }
  action "cancel" {
    uses   = "call"
    by_key = true
    input { value = self.key }
  }
}

workflow "declared" {
  deadline = "5h"
  step "before" {
    action = agent.desk.book
    input { hotel = "Astoria" }
  }
  step "at" {
    depends_on = [step.before]
    wait { signal = "go" }
  }
  output "booking" { value = step.before.output.booking }
}

workflow "leaf" {
  deadline = "4h"
  variable "key" { default = "a" }
  step "first" {
    action = agent.mock.do
    input { value = var.key }
  }
  step "in" {
    depends_on = [step.first]
    wait { signal = "go" }
  }
  output "key" { value = step.first.output.value }
}

workflow "leaf_parked" {
  deadline = "4h"
  compensation { mode = "manual" }
  step "first" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "in" {
    depends_on = [step.first]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "no", permanent = true }
    }
  }
}

workflow "leaf_stuck" {
  deadline = "4h"
  step "first" {
    action = agent.mock.do
    input {
      value = 1
      undo  = { fail = { code = "no", permanent = true } }
    }
  }
  step "in" {
    depends_on = [step.first]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "no", permanent = true }
    }
  }
}

workflow "child" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    workflow   = workflow.leaf
    input { key = "k" }
  }
  output "key" { value = step.at.output.key }
}

workflow "child_each" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on   = [step.before]
    for_each     = toset(["a", "b"])
    max_failures = 1
    workflow     = workflow.leaf
    input { key = each.key }
  }
}

workflow "child_parked" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    workflow   = workflow.leaf_parked
  }
}

workflow "child_stuck" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    workflow   = workflow.leaf_stuck
  }
}

workflow "child_caught" {
  deadline = "5h"
  step "before" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    workflow   = workflow.leaf_parked
    catch { errors = ["*"] }
  }
  step "gate" {
    depends_on = [step.at]
    wait { signal = "go" }
  }
}

workflow "library" {
  deadline = "5h"
  step "before" {
    action = library.shop.agent.desk.do
    input { value = 1 }
  }
  step "at" {
    depends_on = [step.before]
    workflow   = library.shop.workflow.pay
    input { amount = 3 }
  }
}
