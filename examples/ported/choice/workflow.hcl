# An order names a fruit, and only the step for this fruit runs.
workflow "fruit" {
  deadline = "10m"
  variable "fruit" { default = "apple" }

  step "order" {
    action = agent.mock.echo
    input { value = var.fruit }
  }

  step "apple" {
    when   = step.order.output.value == "apple"
    action = agent.mock.do
    input { value = "an apple" }
  }

  step "banana" {
    when   = step.order.output.value == "banana"
    action = agent.mock.do
    input { value = "a banana" }
  }

  step "cherry" {
    when   = step.order.output.value == "cherry"
    action = agent.mock.do
    input { value = "cherries" }
  }

  step "orange" {
    when   = step.order.output.value == "orange"
    action = agent.mock.do
    input { value = "an orange" }
  }

  output "delivered" {
    value = [for s in [step.apple, step.banana, step.cherry, step.orange] : s.output.value if s.status == "succeeded"]
  }
}
