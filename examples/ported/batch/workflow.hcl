# Each object is read, changed and published, some hundred at once. No object waits for
# another one. Objects that fail are left out: even if all of them fail, the run goes on.
workflow "batch" {
  deadline = "1d"
  variable "objects" {
    type    = map(string) # key to content; an empty object cannot be read
    default = { a = "{\"n\":1}", b = "", c = "{\"n\":3}" }
  }

  group "object" {
    for_each     = var.objects
    max_parallel = 300
    max_failures = "100%"

    step "read" {
      action = agent.mock.echo
      input { value = jsondecode(each.value) }
    }

    step "publish" {
      action       = agent.mock.call
      compensation = "none"
      input { value = merge(step.read.output.value, { new_field = "mine" }) }
    }

    output "content" { value = step.publish.output.value }
  }

  output "published" { value = { for key, o in group.object : key => o.output.content if o.status == "succeeded" } }
  output "failed" { value = [for key, o in group.object : key if o.status == "failed"] }
}
