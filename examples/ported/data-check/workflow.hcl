# Checks a table of taxi trips before it is loaded: the number of its rows, the most
# passengers of a trip, and the average distance beside that of yesterday.
workflow "quality" {
  deadline = "10m"
  variable "trips" {
    description = "passengers and distance of each trip, as CSV"
    default     = "1,2.5\n4,1.0\n2,3.1\n"
  }
  variable "rows" { default = 3 }
  variable "yesterday" { default = 2.0 }

  step "measure" {
    action = agent.exec.query
    input {
      argv  = ["awk", "-F,", "{ n++; if ($1 > m) m = $1; s += $2 } END { printf \"{\\\"rows\\\":%d,\\\"most\\\":%d,\\\"mean\\\":%.3f}\", n, m, n ? s / n : 0 }"]
      stdin = var.trips
      parse = "json"
    }
    output_type = object({ json = object({ rows = number, most = number, mean = number }) })
    fail_when {
      condition     = self.output.json.rows != var.rows
      error_message = "${self.output.json.rows} rows, ${var.rows} are expected"
      error_code    = "row_count"
    }
    fail_when {
      condition     = self.output.json.most < 1 || self.output.json.most > 8
      error_message = "a trip with ${self.output.json.most} passengers"
      error_code    = "threshold"
    }
    fail_when {
      condition     = max(self.output.json.mean, var.yesterday) > 1.5 * min(self.output.json.mean, var.yesterday)
      error_message = "trips are ${self.output.json.mean} long, and were ${var.yesterday} yesterday"
      error_code    = "interval"
    }
  }

  step "load" {
    depends_on = [step.measure]
    action     = agent.mock.do
    input { value = var.trips }
  }

  output "rows" { value = step.measure.output.json.rows }
}
