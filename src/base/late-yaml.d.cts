import type * as Yaml from 'yaml';

/** The package `yaml`, loaded at the first call. */
export function loadYaml(): typeof Yaml;
