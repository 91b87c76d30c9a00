package dsl

import "maps"

// Sources returns the source files of the definition by name, as they were when
// it was linked. The caller must not change their bytes.
func (d *Definition) Sources() map[string][]byte { return maps.Clone(d.module.Files) }
