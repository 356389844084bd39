package main

import (
	"flag"
	"fmt"
	"strings"
)

const completionText = `Prints what makes a shell complete the words of trireme:

  source <(trireme completion bash)                                    bash, in ~/.bashrc
  source <(trireme completion zsh)                                     zsh, in ~/.zshrc, after compinit
  trireme completion fish > ~/.config/fish/completions/trireme.fish    fish`

func runCompletion(args []string) error {
	f := flags("completion bash|zsh|fish", completionText)
	if err := parse(f, args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return misuse(f, "which shell is missing")
	}
	switch f.Arg(0) {
	case "bash":
		fmt.Print(bashCompletion())
	case "zsh":
		fmt.Print("autoload -U +X bashcompinit && bashcompinit\n" + bashCompletion())
	case "fish":
		fmt.Print(fishCompletion())
	default:
		return misuse(f, "%q: it is bash, zsh or fish", f.Arg(0))
	}
	return nil
}

// adminWords are the words that may follow others: "" for those of trireme admin itself.
func adminWords() (after map[string][]string) {
	after = map[string][]string{}
	for _, c := range adminCommands() {
		first, second, two := strings.Cut(c.words, " ")
		if len(after[""]) == 0 || after[""][len(after[""])-1] != first {
			after[""] = append(after[""], first)
		}
		if two {
			after[first] = append(after[first], second)
		}
	}
	return after
}

func adminOptions() (all []string) {
	f, _, _ := adminFlags()
	f.VisitAll(func(g *flag.Flag) { all = append(all, "-"+g.Name) })
	return all
}

// adminSwitches are the options that take no value.
func adminSwitches() (all []string) {
	f, _, _ := adminFlags()
	f.VisitAll(func(g *flag.Flag) {
		if b, ok := g.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			all = append(all, "-"+g.Name, "--"+g.Name)
		}
	})
	return all
}

func bashCompletion() string {
	var b strings.Builder
	var names []string
	for _, c := range subcommands() {
		names = append(names, c.name)
	}
	after := adminWords()
	fmt.Fprintf(&b, `_trireme() {
  local cur=${COMP_WORDS[COMP_CWORD]} words=() i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
    %s) ;;
    -*=*) ;;
    -*) ((i++)) ;;
    *) words+=("${COMP_WORDS[i]}") ;;
    esac
  done
  local choices=""
  case "${words[*]}" in
  "") choices="%s" ;;
  admin) choices="%s" ;;
`, strings.Join(adminSwitches(), "|"), strings.Join(names, " "), strings.Join(after[""], " "))
	for _, first := range after[""] {
		if len(after[first]) > 0 {
			fmt.Fprintf(&b, "  \"admin %s\") choices=\"%s\" ;;\n", first, strings.Join(after[first], " "))
		}
	}
	fmt.Fprintf(&b, `  completion) choices="bash zsh fish" ;;
  esac
  if [[ $cur == -* && ${words[0]} == admin ]]; then choices="%s"; fi
  COMPREPLY=($(compgen -W "$choices" -- "$cur"))
}
complete -o default -F _trireme trireme
`, strings.Join(adminOptions(), " "))
	return b.String()
}

func fishCompletion() string {
	var b strings.Builder
	for _, c := range subcommands() {
		fmt.Fprintf(&b, "complete -c trireme -f -n __fish_use_subcommand -a %s -d '%s'\n", c.name, strings.ReplaceAll(c.summary, "'", `\'`))
	}
	after := adminWords()
	fmt.Fprintf(&b, "complete -c trireme -f -n '__fish_seen_subcommand_from admin; and not __fish_seen_subcommand_from %s' -a '%s'\n",
		strings.Join(after[""], " "), strings.Join(after[""], " "))
	for _, first := range after[""] {
		if len(after[first]) > 0 {
			fmt.Fprintf(&b, "complete -c trireme -f -n '__fish_seen_subcommand_from admin; and __fish_seen_subcommand_from %s' -a '%s'\n", first, strings.Join(after[first], " "))
		}
	}
	f, _, _ := adminFlags()
	f.VisitAll(func(g *flag.Flag) {
		_, usage := flag.UnquoteUsage(g)
		fmt.Fprintf(&b, "complete -c trireme -n '__fish_seen_subcommand_from admin' -o %s -d '%s'\n", g.Name, strings.ReplaceAll(usage, "'", `\'`))
	})
	b.WriteString("complete -c trireme -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n")
	return b.String()
}
