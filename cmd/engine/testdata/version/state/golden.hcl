# The module of the runs in this directory. Version 0.1.0 has made them, in a directory in
# which golden-agent was its mock agent, and with ../agents as ENGINE_PLUGIN_DIR. Its engine
# was killed in the middle of *interrupted* and of *undoing*. The .sql files are dumps of the
# states that it left.
agent "mock" {}

workflow "saga" {
  deadline = "900d"
  variable "card" {
    type      = string
    sensitive = true
  }
  variable "pause" {
    type    = string
    default = "0s"
  }
  variable "fail" {
    type    = bool
    default = false
  }
  step "reserve" {
    action = agent.mock.do
    input { value = { seat = "12A" } }
  }
  step "charge" {
    depends_on = [step.reserve]
    action     = agent.mock.do
    input {
      value   = "paid with ${var.card}"
      latency = var.pause
      undo    = { latency = var.fail ? var.pause : "0s" }
    }
  }
  step "ship" {
    for_each   = toset(["berlin", "oslo"])
    depends_on = [step.charge]
    action     = agent.mock.do
    input {
      value = each.key
      fail  = var.fail ? { code = "no_lorry", permanent = true } : null
    }
  }
  output "seat" { value = step.reserve.output.value.seat }
  output "shipped" { value = [for k, s in step.ship : s.output.value] }
}

workflow "unsure" {
  deadline = "900d"
  step "pay" {
    action = agent.mock.call_once
    input {
      value = 1
      fail  = { code = "lost", unknown = true }
    }
    compensate {
      action = agent.mock.call
      input { value = self.output.value }
    }
  }
}
