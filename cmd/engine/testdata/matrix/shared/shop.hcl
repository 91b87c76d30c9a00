agent "desk" {
  plugin = "mock"
  config { ledger = "LEDGER" }
}

workflow "pay" {
  deadline = "4h"
  variable "amount" { type = number }
  step "first" {
    action = agent.desk.do
    input { value = var.amount }
  }
  step "in" {
    depends_on = [step.first]
    wait { signal = "go" }
  }
}
