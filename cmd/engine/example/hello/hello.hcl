# Runs one command and shows what it printed:
#
#   engine apply . --var name=World

workflow "hello" {
  deadline = "1m"

  variable "name" {
    type    = string
    default = "World"
  }

  step "greet" {
    action    = agent.exec.run
    read_only = true # it changes nothing, so there is nothing to undo
    input { argv = ["echo", "Hello, ${var.name}!"] }
  }

  output "greeting" { value = trimspace(step.greet.output.stdout) }
}
