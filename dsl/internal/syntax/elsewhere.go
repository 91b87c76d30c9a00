package syntax

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/hashicorp/hcl/v2"
)

// Advice for people who know other tools: names of arguments and blocks that this language does
// not have, and what to write instead.
const (
	adviseEach      = `For several instances write for_each, with one key for each: for_each = toset(["a", "b"]). For a number of them write toset([for i in range(3) : tostring(i)]).`
	adviseWhen      = `Write when = CONDITION. If it is false, the step is skipped and its output is null.`
	adviseWhenGroup = `Write when = CONDITION. If it is false, the group is skipped and its output is null.`
	adviseDepends   = `Write depends_on = [step.NAME]. A reference such as step.NAME.output.ID makes the dependency, too.`
	adviseAction    = `Write action = agent.NAME.ACTION, with the arguments in an input block.`
	adviseExec      = `Write action = agent.exec.run, with the command in an input block.`
	adviseInput     = `Write an input block with one argument a line.`
	adviseRetry     = `Write retry { max_attempts = 5 }. The first attempt counts.`
	adviseCatch     = `Write catch { errors = ["*"] } to go on after a failure. To undo the step write a compensate block.`
	adviseStep      = `Write step "NAME" { action = agent.NAME.ACTION } in a workflow block. Steps without a dependency between them run in parallel.`
)

// foreignArguments holds the advice about arguments. The first key is the kind of the block, and
// the second key is the name of the argument.
var foreignArguments = map[string]map[string]string{
	"step": {
		"count": adviseEach, "foreach": adviseEach, "for": adviseEach, "loop": adviseEach, "with_items": adviseEach, "matrix": adviseEach,
		"if": adviseWhen, "unless": adviseWhen, "enabled": adviseWhen,
		"condition": `Write when = CONDITION to skip the step. To let it fail write a precondition block with condition and error_message.`,
		"depends":   adviseDepends, "needs": adviseDepends, "requires": adviseDepends, "after": adviseDepends, "next": adviseDepends,
		"run": adviseExec, "command": adviseExec, "script": adviseExec, "shell": adviseExec,
		"uses":     adviseAction,
		"provider": `Write action = agent.NAME.ACTION. The action names the agent, and an agent block holds its settings.`,
		"with":     adviseInput, "args": adviseInput, "arguments": adviseInput, "params": adviseInput, "parameters": adviseInput,
		"retries": adviseRetry, "max_retries": adviseRetry, "attempts": adviseRetry, "max_attempts": adviseRetry,
		"on_failure": adviseCatch, "on_error": adviseCatch, "continue_on_error": adviseCatch, "ignore_errors": adviseCatch,
		"name": `The name of a step is its label: step "NAME" { ... }.`,
	},
	"workflow": {
		"timeout": `Write deadline = "2h". It limits the whole run.`,
		"retries": `Write retry { max_attempts = 5 }. It holds for each step of the workflow.`,
		"name":    `The name of a workflow is its label: workflow "NAME" { ... }.`,
	},
	"group": {
		"timeout": `Write deadline = "2h". It limits all steps of the group together.`,
		"retry":   `Write retry in the steps of the group, or in the workflow for all its steps.`,
		"count":   adviseEach, "if": adviseWhenGroup, "condition": adviseWhenGroup,
		"depends": adviseDepends, "needs": adviseDepends, "requires": adviseDepends, "after": adviseDepends,
		"name": `The name of a group is its label: group "NAME" { ... }.`,
	},
	"agent": {
		"count":    `Write instances = 2 for two processes of the agent.`,
		"provider": `Write plugin = "NAME". Without it the plugin has the name of the agent.`,
	},
}

// foreignBlocks holds the advice about blocks. The key is a kind of block that this language lacks.
var foreignBlocks = map[string]string{
	"resource":  adviseStep,
	"task":      adviseStep,
	"job":       adviseStep,
	"state":     adviseStep,
	"stage":     adviseStep,
	"activity":  adviseStep,
	"data":      `To read something write a step with an action that only reads. Its result is step.NAME.output.`,
	"module":    `The *.hcl files of a directory are one module, without a block. A workflow block in any of them can be run. To use the agents or workflows of another directory, write library "NAME" { source = "../DIRECTORY" }.`,
	"provider":  `Write agent "NAME" { ... }, with the settings in its config block. A step uses it as action = agent.NAME.ACTION.`,
	"terraform": `Write engine { required_version = ">= 0.3" }. Write the version of a plugin in its agent block.`,
	"parallel":  `Steps without a dependency between them run in parallel, without a block.`,
	"sequence":  `A step waits for the steps to which it refers, and for those in depends_on.`,
}

var quotedName = regexp.MustCompile(`"([^"]+)"`)

// adviseForeign adds advice to the findings about names that come from other tools. The parameter
// `kind` is the kind of the block in which these names occur.
func adviseForeign(diags hcl.Diagnostics, kind string) {
	for _, d := range diags {
		name := quotedName.FindStringSubmatch(d.Detail)
		if name == nil {
			continue
		}
		argument, block := foreignArguments[kind][name[1]], foreignBlocks[name[1]]
		switch {
		case d.Summary == "Unsupported argument" && argument != "":
			d.Detail = fmt.Sprintf("An argument named %q is not expected here. %s", name[1], argument)
		case d.Summary == "Unsupported block type" && block != "":
			d.Detail = fmt.Sprintf("Blocks of type %q are not expected here. %s", name[1], block)
		case d.Summary == "Unsupported block type" && argument != "":
			d.Detail = fmt.Sprintf("Blocks of type %q are not expected here. %s", name[1], argument)
		case d.Summary == "Extraneous JSON object property" && argument+block != "":
			d.Detail = fmt.Sprintf("No argument or block type is named %q. %s", name[1], cmp.Or(argument, block))
		}
	}
}
