# Prints the two lines after the line with number token as JSON. If more lines follow,
# the answer has the token of the next page.
BEGIN { printf "{\"executions\":[" }
NR > token && NR <= token + 2 { printf "%s\"%s\"", comma, $0; comma = "," }
END {
  printf "]"
  if (NR > token + 2) printf ",\"next_token\":%d", token + 2
  print "}"
}
