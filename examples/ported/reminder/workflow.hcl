# Sends a message after some time.
workflow "reminder" {
  deadline = "365d"
  variable "message" { default = "Hello" }
  variable "after" { default = "10s" }

  step "pause" {
    timer { duration = var.after }
  }

  step "send" {
    depends_on   = [step.pause]
    action       = agent.mock.call
    compensation = "none"
    input { value = var.message }
  }

  output "sent" { value = step.send.output.value }
  output "waited" { value = timecmp(step.pause.ended_at, timeadd(step.pause.started_at, var.after)) >= 0 }
}
