# Three people are asked at once, and all of them have to approve.
#   engine signal REQUEST approval-ann
#   engine signal REQUEST approval-ben --fail refused
workflow "approvals" {
  deadline = "7d"
  unique { key = var.request }
  variable "request" { type = string }
  variable "approvers" { default = ["ann", "ben", "cleo"] }

  step "ask" {
    for_each     = toset(var.approvers)
    action       = agent.mock.call
    compensation = "none"
    input { value = "${each.key}, please approve ${var.request}" }
  }

  step "approval" {
    for_each   = toset(var.approvers)
    depends_on = [step.ask]
    wait { signal = "approval-${each.key}" }
  }

  output "approved_by" { value = keys(step.approval) }
}
