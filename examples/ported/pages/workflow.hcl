# Reads a list page by page. A page names the token of the next one, and the last page
# names none. The service is a program that prints one page.
workflow "executions" {
  deadline = "1h"
  variable "executions" {
    description = "what the service has, one name for each line"
    default     = "e-1\ne-2\ne-3\ne-4\ne-5\n"
  }

  step "list" {
    action = agent.exec.query
    input {
      argv  = ["awk", "-v", "token=${try(self.previous.json.next_token, 0)}", file("page.awk")]
      stdin = var.executions
      parse = "json"
    }
    repeat {
      until   = !can(self.output.json.next_token)
      collect = self.output.json.executions
    }
  }

  output "pages" { value = length(step.list.collected) }
  output "executions" { value = flatten(step.list.collected) }
}
