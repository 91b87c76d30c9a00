# An application to a college is complete when three things have come, in any order.
#   engine signal APPLICANT application_submitted
workflow "application" {
  deadline = "180d"
  unique { key = var.applicant }
  variable "applicant" { type = string }

  step "papers" {
    for_each = toset(["application_submitted", "scores_received", "letter_received"])
    wait { signal = each.key }
  }

  step "finalize" {
    depends_on = [step.papers]
    action     = agent.mock.do
    input { value = "the application of ${var.applicant} is complete" }
  }

  output "result" { value = step.finalize.output.value }
}
