workflow "hello" {
  deadline = "1m"
  variable "name" { default = "world" }

  step "greet" {
    action       = agent.exec.run
    compensation = "none" # a printed line cannot be taken back
    timeout      = "10s"
    input { argv = ["/bin/echo", "Hello, ${var.name}!"] }
  }

  output "said" { value = trimspace(step.greet.output.stdout) }
}
