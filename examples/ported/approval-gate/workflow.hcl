# Deploys to staging, asks a person, and deploys to production only after a yes.
#   engine signal RELEASE approval --data '{"approve":true}'
workflow "deploy" {
  deadline = "7d"
  unique { key = var.release }
  variable "release" { type = string }

  step "staging" {
    action = agent.mock.do
    input { value = "${var.release} in staging" }
  }

  step "approval" {
    depends_on = [step.staging]
    wait {
      signal  = "approval"
      payload = object({ approve = optional(bool, false) })
    }
  }

  step "production" {
    when   = step.approval.output.approve
    action = agent.mock.do
    input { value = "${var.release} in production" }
  }

  output "production" { value = step.production.status }
}
