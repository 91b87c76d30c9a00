# An expense report is created, decided by a person within ten minutes, and paid.
# Without a decision the run fails, and the report is withdrawn.
#   engine signal EXPENSE decision --data '{"status":"APPROVED"}'
workflow "expense" {
  deadline = "1d"
  unique { key = var.expense }
  variable "expense" { type = string }
  variable "patience" { default = "10m" }

  step "create" {
    action = agent.mock.do
    input { value = var.expense }
  }

  step "decision" {
    depends_on = [step.create]
    deadline   = var.patience
    wait {
      signal  = "decision"
      payload = object({ status = string })
    }
  }

  step "pay" {
    when   = step.decision.output.status == "APPROVED"
    action = agent.mock.do
    input { value = var.expense }
  }

  output "result" { value = step.pay.status == "succeeded" ? "COMPLETED" : step.decision.output.status }
}
