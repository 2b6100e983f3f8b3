// The site is the pages of docs/ as they are: the left column lists each folder's pages by
// their first heading, so a new page needs no entry here.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import path from 'node:path'
import { defineConfig } from 'vitepress'

const docs = fileURLToPath(new URL('..', import.meta.url))
const root = path.dirname(docs.replace(/\/$/, ''))
const repository = 'https://github.com/landwaiter/landwaiter'

// Sections of the left column, in the order in which a reader needs them; the pages named come first.
const sections = [
  ['start', 'Start', ['quickstart', 'faq']],
  ['tutorials', 'Tutorials', ['first-team', 'platform-in-git']],
  ['howto', 'How to', ['install', 'hardening', 'enforce']],
  ['operate', 'Operate', ['production', 'sizing', 'upgrade', 'uninstall', 'check', 'troubleshooting']],
  ['teams', 'For teams', ['denied', 'write-rules']],
  ['concepts', 'Concepts', ['request', 'outcomes', 'rules', 'resources', 'tenants']],
  ['reference', 'Reference', ['verifier', 'truststore', 'verificationpolicy', 'store', 'tenant', 'exception', 'clusterquota']],
  ['compare', 'Compare and migrate', ['other-verifiers', 'migrate']],
  ['contribute', 'Contribute', []],
  ['design', 'Design', []],
]

// title returns the first heading of a page, without marks of code.
function title(page) {
  const heading = readFileSync(path.join(docs, page), 'utf8').match(/^# (.+)$/m)
  if (!heading) throw new Error(`docs/${page} has no heading of level 1`)
  return heading[1].replaceAll('`', '')
}

function pages(folder, first) {
  const names = readdirSync(path.join(docs, folder)).filter((name) => name.endsWith('.md')).map((name) => name.slice(0, -3))
  const place = (name) => (first.includes(name) ? first.indexOf(name) : first.length)
  return names
    .map((name) => ({ name, text: title(`${folder}/${name}.md`), link: `/${folder}/${name}` }))
    .sort((a, b) => place(a.name) - place(b.name) || a.text.localeCompare(b.text))
    .map(({ text, link }) => ({ text, link }))
}

function sidebar() {
  const folders = readdirSync(docs, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !['.vitepress', 'node_modules', 'pictures'].includes(entry.name))
    .map((entry) => entry.name)
  const unknown = folders.filter((folder) => !sections.some(([known]) => known === folder))
  if (unknown.length) throw new Error(`docs/.vitepress/config.mjs has no section for ${unknown.join(', ')}`)
  return sections.filter(([folder]) => folders.includes(folder)).map(([folder, text, first]) => {
    const items = pages(folder, first)
    const commands = path.join(docs, folder, 'commands')
    if (existsSync(commands)) items.push({ text: 'Commands', collapsed: true, items: pages(`${folder}/commands`, []) })
    return { text, collapsed: !['start', 'tutorials', 'howto'].includes(folder), items }
  })
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
  srcExclude: ['node_modules/**'],
  markdown: { config: outside, anchor: { slugify }, languageAlias: { cel: 'javascript' } },
  themeConfig: {
    sidebar: sidebar(),
    nav: [
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
