# A job is started, and its state is asked for until it has ended. Its end is reported.
# A job that does not end after five questions is cancelled: that is the undo of its start.
workflow "monitor" {
  deadline = "1d"
  variable "job" { type = string }
  variable "interval" { default = "5s" }
  variable "states" {
    description = "what the service answers, question after question; the last state stays"
    type        = list(string)
    default     = ["QUEUED", "RUNNING", "SUCCEEDED"]
  }

  step "submit" {
    action = agent.mock.do
    input { value = var.job }
  }

  step "status" {
    depends_on = [step.submit]
    action     = agent.mock.echo
    input { value = var.states[min(length(self.collected), length(var.states) - 1)] }
    repeat {
      until          = contains(["SUCCEEDED", "FAILED"], self.output.value)
      interval       = var.interval
      max_iterations = 5
      collect        = self.output.value
    }
  }

  step "report_success" {
    when         = step.status.output.value == "SUCCEEDED"
    action       = agent.mock.call
    compensation = "none"
    input { value = "${step.submit.output.value} succeeded" }
  }

  step "report_failure" {
    when         = step.status.output.value == "FAILED"
    action       = agent.mock.call
    compensation = "none"
    input { value = "${step.submit.output.value} failed" }
  }

  output "states" { value = step.status.collected }
  output "report" { value = try(step.report_success.output.value, step.report_failure.output.value) }
}
