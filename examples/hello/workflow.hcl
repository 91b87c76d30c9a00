# Runs one program and shows what it printed.
workflow "hello" {
  deadline = "1m"

  variable "name" {
    type    = string
    default = "World"
  }

  step "greet" {
    action = agent.exec.query # query = a program that changes nothing
    input { argv = ["echo", "Hello, ${var.name}!"] }
  }

  output "greeting" { value = trimspace(step.greet.output.stdout) }
}
