# Many things at once: one instance of a step for each key, a few at a time,
# and some of them may fail.
workflow "resize" {
  deadline = "2m"
  variable "pictures" {
    type    = map(number) # name to width
    default = { cat = 640, dog = 800, eel = 0, fox = 1024, gnu = 320, hen = 480, ibex = 0, jay = 720 }
  }
  variable "tolerate" { default = 2 }

  step "resize" {
    for_each     = var.pictures
    max_parallel = 3            # no more than three at work
    max_failures = var.tolerate # with more failures than that, the step fails
    action       = agent.mock.do
    input {
      value   = { name = each.key, width = each.value / 2 }
      latency = "50ms"
      fail    = each.value > 0 ? null : { code = "empty_picture", message = "${each.key} has no pixels", permanent = true }
    }
  } # mock.do declares compensated_by = "undo": what was done is undone if the run fails

  step "index" {
    action = agent.mock.do
    input { value = [for name, r in step.resize : name if r.status == "succeeded"] }
  }

  output "resized" { value = step.index.output.value }
  output "failed" { value = { for name, r in step.resize : name => r.error.code if r.status == "failed" } }
}
