# Each object is read, changed and published, some hundred at once. Objects that fail
# are left out: even if all of them fail, the run goes on.
workflow "batch" {
  deadline = "1d"
  variable "objects" {
    type    = map(string) # key to content; an empty object cannot be read
    default = { a = "{\"n\":1}", b = "", c = "{\"n\":3}" }
  }

  step "read" {
    for_each     = var.objects
    max_parallel = 300
    max_failures = "100%"
    action       = agent.mock.echo
    input { value = jsondecode(each.value) }
  }

  step "publish" {
    for_each     = { for key, r in step.read : key => merge(r.output.value, { new_field = "mine" }) if r.status == "succeeded" }
    max_parallel = 300
    max_failures = "100%"
    action       = agent.mock.call
    compensation = "none"
    input { value = each.value }
  }

  output "published" { value = { for key, p in step.publish : key => p.output.value if p.status == "succeeded" } }
  output "failed" { value = [for key, r in step.read : key if r.status == "failed"] }
}
