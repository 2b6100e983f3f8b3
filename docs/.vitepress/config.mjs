// The site is the pages of docs/ as they are. The left column lists the pages of each folder by
// their first heading, so a new page needs no entry here.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import path from 'node:path'
import { defineConfig } from 'vitepress'

const docs = fileURLToPath(new URL('..', import.meta.url))
const root = path.dirname(docs.replace(/\/$/, ''))
const repository = 'https://github.com/landwaiter/landwaiter'
const aside = ['.vitepress', 'node_modules', 'pictures'] // folders of docs/ without pages

// Sections of the left column, in the order in which a reader needs them. The pages that are named come
// first, the others follow by their headings.
const sections = [
  ['start', 'Start', ['quickstart', 'faq']],
  ['tutorials', 'Tutorials', ['first-team', 'platform-in-git']],
  ['howto', 'How to', ['install', 'install-without-helm', 'hardening', 'enforce', 'sign', 'self-service', 'tenants', 'trust', 'registries', 'mirrors', 'preview', 'page', 'audit', 'gitops-layouts', 'gitops-take-over', 'gitops-operate']],
  ['operate', 'Operate', ['production', 'sizing', 'scale', 'check', 'troubleshooting', 'outage', 'break-glass', 'upgrade', 'uninstall']],
  ['teams', 'For teams', ['denied', 'write-rules']],
  ['concepts', 'Concepts', ['request', 'outcomes', 'rules', 'resources', 'tenants', 'precedence']],
  ['reference', 'Reference', ['resources', 'verifier', 'truststore', 'verificationpolicy', 'store', 'exception', 'tenant', 'clusterquota', 'conditions', 'reasons', 'denials', 'cli']],
  ['compare', 'Compare and migrate', ['other-verifiers', 'migrate', 'ratify']],
  ['contribute', 'Contribute', []],
  ['design', 'Design', []],
]

// title returns the first heading of a page, without marks of code.
function title(page) {
  const heading = readFileSync(path.join(docs, page), 'utf8').match(/^# (.+)$/m)
  if (!heading) throw new Error(`docs/${page} has no heading of level 1`)
  return heading[1].replaceAll('`', '')
}

function entries(folder) {
  return readdirSync(path.join(docs, folder), { withFileTypes: true }).filter((entry) => !aside.includes(entry.name))
}

// items lists the pages of a folder, then its folders, closed.
function items(folder, first) {
  const names = entries(folder).filter((entry) => entry.name.endsWith('.md')).map((entry) => entry.name.slice(0, -3))
  const place = (name) => (first.includes(name) ? first.indexOf(name) : first.length)
  const pages = names
    .map((name) => ({ name, text: title(`${folder}/${name}.md`), link: `/${folder}/${name}` }))
    .sort((a, b) => place(a.name) - place(b.name) || a.text.localeCompare(b.text))
    .map(({ text, link }) => ({ text, link }))
  const folders = entries(folder).filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  return [...pages, ...folders.sort().map((name) => ({ text: capital(name), collapsed: true, items: items(`${folder}/${name}`, []) }))]
}

function capital(name) {
  return name[0].toUpperCase() + name.slice(1)
}

function sidebar() {
  const known = sections.map(([folder]) => folder)
  const unknown = entries('').filter((entry) => (entry.isDirectory() ? !known.includes(entry.name) : entry.name.endsWith('.md') && entry.name !== 'index.md'))
  if (unknown.length) throw new Error(`docs/.vitepress/config.mjs has no section for docs/${unknown.map((entry) => entry.name).join(', docs/')}`)
  return sections.map(([folder, text, first]) => ({ text, collapsed: !['start', 'tutorials', 'howto'].includes(folder), items: items(folder, first) }))
}

// outside makes links to files beside docs/ lead to the repository, and fails if a file is not there.
function outside(markdown) {
  const inside = markdown.renderer.rules.link_open ?? ((tokens, i, options, env, self) => self.renderToken(tokens, i, options))
  markdown.renderer.rules.link_open = (tokens, i, options, env, self) => {
    const href = tokens[i].attrGet('href') ?? ''
    if (href.startsWith('../') || href.startsWith('./')) {
      const [file, fragment] = href.split('#')
      const target = path.join(docs, path.dirname(env.relativePath), decodeURI(file))
      const relative = path.relative(root, target)
      if (!relative.startsWith('docs/')) {
        if (!existsSync(target)) throw new Error(`docs/${env.relativePath}: ${href} does not exist`)
        tokens[i].attrSet('href', `${repository}/tree/main/${relative}${fragment ? `#${fragment}` : ''}`)
      }
    }
    return inside(tokens, i, options, env, self)
  }
}

// slugify names a heading as forges do, so that one link leads to it in both places.
function slugify(heading) {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '').replaceAll(' ', '-')
}

export default defineConfig({
  title: 'Landwaiter',
  description: 'Decides which container images may enter a Kubernetes cluster, namespace by namespace.',
  lang: 'en',
  cleanUrls: true,
  base: process.env.DOCS_BASE ?? '/',
  srcExclude: ['node_modules/**'],
  // Pictures stay files, so that style.css finds them. The index of the search is large, in kB.
  vite: { build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 4096 } },
  markdown: { config: outside, anchor: { slugify }, languageAlias: { cel: 'javascript' } },
  themeConfig: {
    sidebar: sidebar(),
    nav: [
      { text: 'Quick start', link: '/start/quickstart' },
      { text: 'Install', link: '/howto/install' },
      { text: 'Why was my pod denied?', link: '/teams/denied' },
      { text: 'Reference', link: '/reference/verifier' },
    ],
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
  },
})
