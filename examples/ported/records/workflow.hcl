# Each record is processed by a run of its own, at most 20 at once. If more than a
# quarter of the records fail, the run fails and the records that were stored go again.
workflow "records" {
  deadline = "1h"
  variable "records" { default = ["a", "b", "c", "d"] }
  variable "broken" { default = ["none"] }

  step "process" {
    workflow     = workflow.record
    for_each     = toset(var.records)
    max_parallel = 20
    max_failures = "25%"
    input {
      record = each.key
      broken = contains(var.broken, each.key)
    }
  }

  output "processed" { value = [for record, p in step.process : record if p.status == "succeeded"] }
}

workflow "record" {
  deadline = "10m"
  variable "record" { type = string }
  variable "broken" { default = false }

  step "store" {
    action = agent.mock.do
    input { value = var.record }
  }

  step "check" {
    action = agent.mock.echo
    input { value = step.store.output.value }
    postcondition {
      condition     = !var.broken
      error_message = "Record ${var.record} is broken."
      error_code    = "broken_record"
    }
  }
}
